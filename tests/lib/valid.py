"""valid of tap.sh: reads lines of a schema and a file, says what is wrong and then an empty line."""
import json
import sys

import jsonschema


def fault(schema, document):
    try:
        schema, document = (json.load(open(f)) for f in (schema, document))
        if hasattr(jsonschema, "Draft202012Validator"):
            jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(document, schema)
    except (jsonschema.ValidationError, jsonschema.SchemaError) as e:
        return "/".join(map(str, e.absolute_path)) + ": " + e.message[:2000].replace("\n", " ")
    except (OSError, ValueError) as e:
        return str(e)
    return ""


for line in sys.stdin:
    said = fault(*line.rstrip("\n").split(" ", 1))
    print(said + "\n" if said else "")
