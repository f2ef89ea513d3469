"""Requests that are made from the document of the API; made when a test runs, since there are very many."""

import re
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

import schemathesis
from hypothesis import settings
from schemathesis import GenerationMode
from schemathesis.generation.hypothesis.builder import HypothesisTestConfig, HypothesisTestMode, create_test

from tests.support.http_helpers import api_document

Case = schemathesis.Case[Any]


def labels(*, without: str, tags: Collection[str] = ()) -> list[str]:
    """Every operation as `METHOD path`, but those whose id fits a pattern or that have one of these tags."""
    return [
        f"{method.upper()} {path}"
        for path, item in api_document()["paths"].items()
        for method, about in item.items()
        if not re.search(without, about["operationId"]) and not set(tags) & set(about["tags"])
    ]


def send_all(operation: str, send: Callable[[Case], None], how: settings, *, only_valid: bool = False) -> None:
    """Have every case of an operation sent; the first whose answer is wrong fails the test."""
    method, path = operation.split()
    schema = _schema(only_valid)
    config = HypothesisTestConfig(project=schema.config, modes=list(HypothesisTestMode))

    def sends(case: Case) -> None:
        send(case)

    create_test(operation=schema[path][method], test_func=how(sends), config=config)()


@cache
def _schema(only_valid: bool) -> Any:
    schema = schemathesis.openapi.from_dict(api_document())
    if only_valid:
        schema.config.generation.update(modes=[GenerationMode.POSITIVE])
    return schema
