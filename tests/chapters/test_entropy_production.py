"""The drawing of the module has its parts."""

from chapters import entropy_production as plot


def test_the_drawing_of_the_module_closes_its_loop():
    texts = [text.get_text() for text in plot.module().axes[0].texts]
    assert any("later" in text for text in texts)
    assert any("softmax" in text for text in texts)
