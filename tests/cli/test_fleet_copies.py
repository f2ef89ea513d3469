"""A follower's copy becomes what an archive has, and nothing else is touched."""

import io
import tarfile
from pathlib import Path

from ostler.cli.fleet.copies import claim, receive


def archive(tree: Path) -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.add(tree, arcname=".")
    packed.seek(0)
    return packed


def test_a_link_in_the_place_of_a_folder_takes_nothing_away_from_where_it_leads(tmp_path: Path) -> None:
    tree, copy, theirs = tmp_path / "tree", tmp_path / "copy", tmp_path / "theirs"
    for folder in (tree / "old", tree / "more", copy, theirs):
        folder.mkdir(parents=True)
    for file in (tree / "old" / "a.txt", tree / "more" / "b.txt", theirs / "b.txt"):
        file.write_text("here")
    assert claim(copy, overwrite=False)
    receive(copy, archive(tree))
    (tree / "old").rename(tree / "new")
    (tree / "old").symlink_to("new")
    (tree / "more" / "b.txt").unlink()
    (tree / "more").rmdir()
    (tree / "more").symlink_to(theirs)
    receive(copy, archive(tree))
    assert (copy / "new" / "a.txt").read_text() == "here"
    assert (theirs / "b.txt").read_text() == "here"
    assert (copy / "old").is_symlink()
