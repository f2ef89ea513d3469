"""All snapshot providers, and the choice between them."""

from collections.abc import Sequence
from pathlib import Path

from ostler.base.errors import ProviderUnavailable
from ostler.base.ids import new_id
from ostler.runner.file_trees.trees import remove_tree
from ostler.runner.workspaces.git import Git
from ostler.runner.workspaces.orders import FolderSource, GitSource, Order
from ostler.runner.workspaces.providers.btrfs import Btrfs
from ostler.runner.workspaces.providers.checkout import Checkout
from ostler.runner.workspaces.providers.holders import Holders
from ostler.runner.workspaces.providers.overlay import Overlay
from ostler.runner.workspaces.providers.plain import Copy, InPlace, Reflink
from ostler.runner.workspaces.providers.provider import Provider, ProviderUnusable
from ostler.runner.workspaces.providers.zfs import Zfs
from ostler.wire.workspaces import ProviderVerdict, SnapshotProvider

DEFAULT_ORDER: tuple[SnapshotProvider, ...] = ("zfs", "btrfs", "overlay", "overlay-root", "reflink", "git", "copy")
"""Best first; `in-place` is not among them on purpose."""


class Providers:
    """The providers of one root folder; each is tried there once, when first needed."""

    def __init__(
        self, git: Git, holders: Holders, root: Path, *, order: Sequence[SnapshotProvider], zfs: Sequence[str]
    ) -> None:
        self._overlays = (Overlay(holders, root, user=True), Overlay(holders, root, user=False))
        kinds: tuple[Provider, ...] = (
            *(Zfs(root, zfs), Btrfs()),
            *self._overlays,
            *(Reflink(), Checkout(git), Copy(), InPlace()),
        )
        self._known = {provider.kind: provider for provider in kinds}
        self._order = tuple(order) or DEFAULT_ORDER
        self._scratch = root / "incoming"
        self._verdicts: dict[SnapshotProvider, ProviderVerdict] = {}

    def __getitem__(self, kind: SnapshotProvider) -> Provider:
        return self._known[kind]

    def by_name(self, name: str) -> Provider:
        """The provider of a name that was written down; an unknown one is removed like a copy."""
        return next((provider for kind, provider in self._known.items() if kind == name), self._known["copy"])

    def verdicts(self) -> list[ProviderVerdict]:
        """What works here, best first."""
        return [self._verdict(kind) for kind in self._order]

    def choose(self, order: Order) -> tuple[Provider, tuple[ProviderVerdict, ...]]:
        """The best provider for an order, and those that were better but do not work; raises ProviderUnavailable."""
        if isinstance(order.source, FolderSource) and order.source.in_place:
            return self._known["in-place"], ()
        rest = () if order.strict and order.providers else self._order
        refused: list[ProviderVerdict] = []
        for kind in dict.fromkeys((*order.providers, *rest)):
            verdict = self._fitting(kind, order)
            if verdict.works:
                return self._known[kind], tuple(refused)
            refused.append(verdict)
        raise ProviderUnavailable(
            wanted=", ".join(order.providers or self._order),
            reasons="; ".join(f"{verdict.provider}: {verdict.why_not}" for verdict in refused) + ".",
        )

    def _fitting(self, kind: SnapshotProvider, order: Order) -> ProviderVerdict:
        verdict = self._verdict(kind)
        if kind == "in-place":
            return _no(verdict, "it must be asked for with the source, not as a preference")
        if kind == "git" and not isinstance(order.source, GitSource):
            return _no(verdict, "the source is not a git repository")
        if order.visible and not verdict.visible:
            return _no(verdict, "other processes would not see its tree")
        return verdict

    def _verdict(self, kind: SnapshotProvider) -> ProviderVerdict:
        if kind not in self._verdicts:
            self._verdicts[kind] = self._tried(self._known[kind])
        return self._verdicts[kind]

    def _tried(self, provider: Provider) -> ProviderVerdict:
        folder = self._scratch / new_id("prb")
        folder.mkdir(parents=True)
        why_not = None
        try:
            provider.probe(folder)
        except (ProviderUnusable, OSError) as error:
            why_not = (getattr(error, "strerror", None) or str(error)).rstrip(".")
        finally:
            remove_tree(folder)
        return ProviderVerdict(provider=provider.kind, works=why_not is None, visible=provider.visible, why_not=why_not)

    def rest_unused(self, seconds: float) -> None:
        """Unmount overlays that nobody has used for so long."""
        for overlay in self._overlays:
            overlay.rest_unused(seconds)

    def let_go(self) -> None:
        """Stop holding overlays."""
        for overlay in self._overlays:
            overlay.let_go()


def _no(verdict: ProviderVerdict, why_not: str) -> ProviderVerdict:
    return ProviderVerdict(provider=verdict.provider, works=False, visible=verdict.visible, why_not=why_not)
