def test_an_option_of_one_grounding_is_taken_like_a_field() -> None:
    config = EvalConfig(grounding="annotation", marks="number")
    assert config == EvalConfig().changed(grounding="annotation", marks="number")
    assert config.own("marks") == "number"
