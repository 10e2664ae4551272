"""What Airflow renders as a template is what the author of a DAG has written, and no data."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

from airflow.sdk import DAG, BaseNotifier, BaseOperator, BaseSensorOperator

import lakehouse_airflow

AUTHORS = {"table", "specs", "conf", "env_vars"}
"""The arguments that the author of a DAG may write as templates."""
DATA = "{{ 1 + 1 }}"


def own_classes(*kinds: type) -> Iterator[type]:
    """Yield the classes of these kinds that Millrace defines."""
    for module in walk_packages(lakehouse_airflow.__path__, f"{lakehouse_airflow.__name__}."):
        for _, found in inspect.getmembers(import_module(module.name), inspect.isclass):
            if issubclass(found, kinds) and found.__module__ == module.name:
                yield found


def test_only_arguments_of_a_dag_author_are_templates_and_their_documentation_says_so() -> None:
    found = list(own_classes(BaseOperator, BaseSensorOperator))
    assert len(found) > 15
    for kind in found:
        fields = set(kind.template_fields)
        documentation = "".join(f":param{of}" for each in kind.__mro__ for of in (each.__doc__ or "").split(":param"))
        templated = {text.split(":")[0].strip() for text in documentation.split(":param") if "(templated)" in text}
        assert fields <= AUTHORS & templated, kind
        assert not kind.template_ext, f"{kind} would read a file with the name of a value"
    assert not any(kind.template_fields for kind in own_classes(BaseNotifier))


def test_data_in_every_field_of_every_task_comes_out_unchanged(dags: dict[str, DAG]) -> None:
    seen = set()
    for dag in dags.values():
        for task in dag.tasks:
            if not isinstance(task, BaseOperator):
                assert task.template_fields == (), "a mapped task"
                continue
            task = task.prepare_for_execution()
            data = {
                name: DATA if value is None or isinstance(value, str) else [DATA, {DATA: DATA}]
                for name, value in vars(task).items()
                if (value is None or isinstance(value, str | list | dict)) and name not in AUTHORS
            }
            vars(task).update(data)
            task.render_template_fields({"params": {"table": "silver.flights"}}, dag.get_template_env())
            assert {name: vars(task)[name] for name in data} == data, type(task)
            assert DATA not in str([getattr(task, name) for name in task.template_fields])
            seen.add(type(task))
    assert len(seen) > 8
