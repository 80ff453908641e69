"""valid of tap.sh: what is wrong with a file, by a schema; nothing where it is valid."""
import json

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
    return "/".join(map(str, e.absolute_path)) + ": " + e.message[:2000] if e else ""
