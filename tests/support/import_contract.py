"""A contract for import-linter: one package imports public modules of another, no module with an underscore."""

from __future__ import annotations

from typing import Any

from importlinter import Contract, ContractCheck, fields, output


class PublicModulesOnly(Contract):
    """Modules of ``source`` import no module of ``library`` whose path has a name that starts with an underscore."""

    source = fields.StringField()
    library = fields.StringField()

    def check(self, graph: Any, verbose: bool) -> ContractCheck:
        """Look at every import of one package from the other."""
        source, library = str(self.source), str(self.library)
        private = [
            module
            for module in graph.modules
            if module.startswith(f"{library}.") and any(part.startswith("_") for part in module.split("."))
        ]
        broken = sorted(
            (importer, module)
            for module in private
            for importer in graph.find_modules_that_directly_import(module)
            if importer == source or importer.startswith(f"{source}.")
        )
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name each import."""
        for importer, module in check.metadata["broken"]:
            output.print_error(f"{importer} imports {module}, which is private.")
