"""valid of tap.sh: reads lines of a schema and a file, says what is wrong and then an empty line."""
import json
import sys

import jsonschema

validators = {}  # by the schema's path: to check a schema takes longer than most documents


def validator(path):
    if path not in validators:
        schema = json.load(open(path))
        kind = jsonschema.validators.validator_for(schema)
        kind.check_schema(schema)
        validators[path] = kind(schema)
    return validators[path]


def fault(schema, document):
    try:
        e = jsonschema.exceptions.best_match(validator(schema).iter_errors(json.load(open(document))))
    except (jsonschema.SchemaError, OSError, ValueError) as why:
        return str(why)
    return "/".join(map(str, e.absolute_path)) + ": " + e.message[:2000].replace("\n", " ") if e else ""


for line in sys.stdin:
    said = fault(*line.rstrip("\n").split(" ", 1))
    print(said.replace("\n", " ") + "\n" if said else "")
