"""The example network: its sizes and counts, the data it sees, and that training does what it says."""

import numpy as np
import pytest
import torch

from experiments import digit_network as network
from spinbook.adaptive_tap import attention, couplings


@pytest.fixture(scope="module")
def images():
    return network.load()


def made(seed=0, **options):
    torch.manual_seed(seed)
    return network.DigitNetwork(**options)


def test_images_are_standardised_enlargements_of_the_bundled_digits(images):
    assert images.train.shape == (1438, 1, 28, 28)
    assert len(images.test) == len(images.test_labels) == 359
    assert float(images.train.mean()) == pytest.approx(0, abs=1e-4)
    assert float(images.train.std()) == pytest.approx(1, abs=1e-4)
    assert images.train_labels.bincount().min() > 100
    # Enlarging by 3.5 and averaging back over the same area returns about the original picture.
    back = torch.nn.functional.interpolate(images.train, size=(8, 8), mode="area")
    again = torch.nn.functional.interpolate(back, size=(28, 28), mode="bilinear")
    correlation = np.corrcoef(again.flatten(), images.train.flatten())[0, 1]
    assert correlation > 0.95


def test_parameter_counts_by_every_rule():
    net = made()
    layers = (32 * 9 + 32) + (32 * 32 * 9 + 32) + (32 * 10 + 10) + 10 + (10 * 10 + 10)
    correction = (10 * 40 + 40) + (40 * 10 + 10)
    assert network.count_parameters(net, free=False) == layers + correction + 17 * 17 * 100
    assert network.count_parameters(net) == layers + correction + 17 * 16 * 55
    bare = attention.MeanFieldAttention(
        17, 10, symmetry=couplings.symmetrize_components, correction=attention.NoCorrection()
    )
    assert network.count_parameters(made(attention=bare)) == layers + 17 * 16 * 55


def test_class_token_is_one_field_for_all_images(images):
    net = made()
    X = net.fields(images.train[:3])
    assert torch.equal(X[0, 0], X[2, 0])
    assert torch.equal(X[1, 0], net.class_token[0, 0])
    assert (X[0, 1:] - X[1, 1:]).abs().max() > 1e-3


def test_other_fields_are_the_patches_of_the_image_row_by_row_however_it_lies_in_memory(images):
    net, picture = made(), images.train[:3]
    with torch.no_grad():
        X = net.fields(picture)
        maps = net.features(picture)
        for row, column in np.ndindex(4, 4):
            patch = net.to_fields(maps[:, :, row, column])
            np.testing.assert_allclose(X[:, 1 + 4 * row + column], patch, atol=1e-5)
        across = picture.mT.contiguous().mT
        np.testing.assert_allclose(net.fields(across), X, atol=1e-5)


def test_class_is_read_off_the_response_of_the_first_spin(images):
    net = made()
    with torch.no_grad():
        X = net.fields(images.train[:3])
        S = net.attention.solve(X).value
        found = net.solve(images.train[:3])
        np.testing.assert_allclose(net(images.train[:3]), net.final(S[:, 0]), atol=1e-6)
        later = net.final(net.attention.step(S, X)[:, 0])
    # In training it is the response one update later, and nearer to the fixed point than the tolerance.
    trained = net(images.train[:3]).detach()
    np.testing.assert_allclose(trained, later, atol=1e-6)
    np.testing.assert_allclose(trained, found.logits, atol=1e-3)
    assert not torch.equal(trained, found.logits)
    assert bool(found.converged.all())
    assert int(found.num_steps.min()) > 0


def test_any_attention_module_fits_in(images):
    explicit = attention.AdaptiveTAPAttention(17, 10)
    net = made(attention=explicit)
    net(images.train[:2]).sum().backward()
    assert explicit.couplings.grad.abs().max() > 0
    assert network.train(net, images, num_updates=1).coupling_norms.shape == (1, 17, 17)


def test_training_lowers_the_loss_organises_the_couplings_and_is_reproducible(images):
    results = []
    few = network.Images(images.train[:16], images.train_labels[:16], images.train[:16], images.train_labels[:16])
    for _ in range(2):
        generator = torch.Generator().manual_seed(1)
        results.append(
            network.train(
                made(1), few, num_updates=20, learning_rate=2e-3, frames=[0, 5], generator=generator, batch_size=16
            )
        )
    first, second = results
    # Steps as long as these still leave every response resolved, and the training without surprises.
    assert first.num_unresolved == 0
    assert first.frames.tolist() == [0, 5, 20]
    assert float(first.losses[-1]) < float(first.losses[0]) - 0.2
    assert torch.equal(first.coupling_norms, second.coupling_norms)
    assert (first.coupling_norms[-1] - first.coupling_norms[0]).abs().max() > 0.01
    assert torch.diagonal(first.coupling_norms, dim1=1, dim2=2).abs().max() == 0
    assert first.train_losses.shape == first.num_steps.shape == (20,)


def test_responses_that_are_not_found_are_counted(images):
    hasty = attention.MeanFieldAttention(17, 10, tol=1e-6, max_steps=1)
    net = made(attention=hasty)
    assert network.train(net, images, num_updates=2, batch_size=10).num_unresolved == 20


def test_bad_input_is_named(images):
    with pytest.raises(ValueError, match=r"images: expected shape \(batch, 1, 28, 28\)"):
        made()(torch.zeros(2, 28, 28))
