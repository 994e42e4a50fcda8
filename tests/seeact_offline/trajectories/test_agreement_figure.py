"""The picture of `agreement` says what its labels are."""

from __future__ import annotations

from seeact_offline.trajectories.agreement_tables import draw_agreement


def test_a_picture_of_agreement_says_that_labels_are_constructed() -> None:
    judge = {"judge": "webvoyager", "model": "m", "k": "3", "n_tasks": 2, "agreement": None, "kappa": None}
    found = {"judges": [judge], "n_labels": 4, "sources": ["constructed"]}
    assert draw_agreement(found).get_suptitle() == (
        "4 labelled trajectories, 2 tasks; constructed labels (right or wrong by the way they were made)"
    )
    assert "constructed" not in draw_agreement({**found, "sources": ["people"]}).get_suptitle()
