"""Every answer of a running server has the form that its own openapi.json states: over a study with failed, stopped and running trials, one without
models, and one that minimises."""

import json
import urllib.parse

import tap
from serve_client import make_study, serving
from tap import equal, run

PAIR = "x=train.learning_rate&y=train.gamma"
STUDIES = {"big": "0", "few": "0", "down": "0"}
QUERIES = {"/model/slice": ["param=train.learning_rate", "param=train.gamma&at=best"], "/model/contour": [PAIR], "/trials": ["", "limit=7&fields=number,params"],
           "/briefing": ["", "since_ms=1000"], "/pick": ["", "rule=knee", "rule=best-run"], "/trials/{trial}": ["", "against=1"],
           "/compare": ["studies=" + urllib.parse.quote('["big","few"]')]}


def differs(value, schema, at="answer"):
    """Where value is not of this schema (of OpenAPI 3.0, as far as it is used); None: nowhere."""
    if "oneOf" in schema:
        found = [differs(value, option, at) for option in schema["oneOf"]]
        return None if found.count(None) == 1 else "%s: %s" % (at, "; ".join(filter(None, found)) or "fits several forms")
    if value is None and (schema.get("nullable") or "type" not in schema):
        return None
    kind = schema.get("type")
    fits = {None: True, "string": isinstance(value, str), "boolean": isinstance(value, bool), "array": isinstance(value, list), "object": isinstance(value, dict),
            "integer": isinstance(value, int) and not isinstance(value, bool), "number": isinstance(value, (int, float)) and not isinstance(value, bool)}
    if not fits[kind]:
        return "%s is %r and no %s" % (at, value, kind)
    if "enum" in schema and value not in schema["enum"]:
        return "%s is %r, none of %r" % (at, value, schema["enum"])
    if kind == "array":
        return next(filter(None, (differs(v, schema["items"], "%s[%d]" % (at, i)) for i, v in enumerate(value))), None)
    if kind == "object":
        lacks = [key for key in schema.get("required", []) if key not in value]
        if lacks:
            return "%s lacks %s" % (at, ", ".join(lacks))
        more = schema.get("additionalProperties", {})
        own = schema.get("properties", {})
        return next(filter(None, (differs(v, own.get(key, more if isinstance(more, dict) else {}), "%s.%s" % (at, key)) for key, v in value.items())), None)
    return None


def served(folder):
    store = folder / "s.db"
    make_study(store, "big", 90, 2)
    config = tap.write(folder, "t.ini", tap.TINY_SWEEP)
    run("sweep", config, "--store", store, "--name", "few", "--trials", "3", "-q")
    run("sweep", config, "--store", store, "--name", "down", "--trials", "8", "--sweep.goal", "minimize", "--sweep.metric", "ep_length", "-q")
    return serving(store, "--no-token")


def test_every_answer_has_the_form_that_is_stated(folder):
    checked = set()
    with served(folder) as s:
        paths = s.get("/api/v1/openapi.json")["paths"]
        for path, methods in paths.items():
            answer = methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {}).get("application/json")
            if answer is None:
                continue
            assert answer.get("schema"), "%s has no form" % path
            tail = path.split("{study}", 1)[1] if "{study}" in path else path.removeprefix("/api/v1")
            for study in STUDIES if "{study}" in path else [""]:
                for trial in (0, 1, 6) if "{trial}" in path else [0]:
                    for query in QUERIES.get(tail, [""]):
                        real = path.replace("{study}", study).replace("{trial}", str(trial)) + "?" + query
                        status, _, body = tap.wait_for(lambda: next((a for a in [s.request(real)] if a[0] not in (202, 503)), None))
                        if status != 200:  # no model of three trials, no trial 6 of them
                            failure = methods["get"]["responses"]["default"]["content"]["application/json"]["schema"]
                            equal(differs(json.loads(body), failure), None)
                            continue
                        wrong = differs(json.loads(body), answer["schema"])
                        assert wrong is None, "%s: %s" % (real, wrong)
                        checked.add(path)
        typed = {p for p, m in paths.items() if "application/json" in m.get("get", {}).get("responses", {}).get("200", {}).get("content", {})}
        equal(typed - checked, set())
        # the comparison itself finds what is wrong
        form = paths["/api/v1/studies/{study}/front"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        front = s.get("/api/v1/studies/big/front")
        assert "lacks points" in differs({k: v for k, v in front.items() if k != "points"}, form)
        assert "no integer" in differs({**front, "version": "1"}, form)
        assert differs({**front, "points": [{**front["points"][0], "score": "much"}]}, form)
