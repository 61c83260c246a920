"""The licences and the bill of materials, held to CycloneDX's own schema."""

import json
import re
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest
from referencing import Registry, Resource
from referencing.exceptions import NoSuchResource
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.cli.licences import bill, parts_of
from ragqa.models import EMBEDDED

runner = CliRunner()


def test_everything_that_is_needed_is_listed_and_nothing_of_the_tests():
    lines = [line.split("\t") for line in runner.invoke(app, ["licences"]).output.splitlines()]
    listed = {line[0]: line[2] for line in lines}
    wanted = [line for line in requires("ragqa") if "extra ==" not in line]
    names = {re.match(r"[\w.-]+", line)[0].lower().replace("_", "-") for line in wanted}
    assert names <= set(listed)
    assert not set(listed) & {"pytest", "hypothesis", "ruff", "mypy", "playwright", "oidc-provider-mock"}
    assert [name for name, licence in listed.items() if licence == "not stated"] == []
    assert listed["ragqa"] == "Apache-2.0"


def test_the_bill_of_materials_is_whole_and_the_same_each_time(tmp_path):
    for name in ("one.json", "two.json"):
        assert runner.invoke(app, ["licences", "--sbom", str(tmp_path / name)]).exit_code == 0
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    found = json.loads((tmp_path / "one.json").read_text())
    known = {one["bom-ref"] for one in found["components"]} | {found["metadata"]["component"]["bom-ref"]}
    named = {one["ref"] for one in found["dependencies"]} | {
        to for one in found["dependencies"] for to in one["dependsOn"]
    }
    assert named == known
    assert {f"model:{name}" for name in EMBEDDED} <= known
    assert len({one["bom-ref"] for one in found["components"]}) == len(found["components"]) > 80


@pytest.mark.skipif(not find_spec("cyclonedx"), reason="no schema: pip install -e .[dev]")
def test_the_bill_of_materials_is_what_cyclonedx_says():
    import cyclonedx.schema

    folder = Path(cyclonedx.schema.__file__).parent / "_res"
    named = {"bom": "bom-1.6.SNAPSHOT", "spdx": "spdx.SNAPSHOT", "jsf": "jsf-0.82.SNAPSHOT"}
    schemas = {name: json.loads((folder / f"{file}.schema.json").read_text()) for name, file in named.items()}

    def retrieve(uri):
        for name, schema in schemas.items():
            if f"/{named[name].partition('.SNAPSHOT')[0]}" in uri:
                return Resource.from_contents(schema)
        raise NoSuchResource(uri)

    check = jsonschema.Draft7Validator(schemas["bom"], registry=Registry(retrieve=retrieve))
    found = bill(parts_of("ragqa"))
    assert [error.message for error in check.iter_errors(found)] == []
    assert list(check.iter_errors(found | {"specVersion": 7, "surplus": 1})) != []
