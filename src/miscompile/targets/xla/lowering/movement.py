"""Operators that move elements. Sources: the operator pages of the ONNX documentation."""

import jax
import jax.numpy as jnp
import numpy as np

from miscompile.targets.lowering.table import lowers


@lowers("Reshape", static=(1,))
def reshape(x: jax.Array, shape: tuple[int, ...], *, allowzero: int = 0) -> jax.Array:
    """x in another shape; a 0 copies the size of x, unless `allowzero` is given."""
    if not allowzero:
        shape = tuple(x.shape[axis] if size == 0 else size for axis, size in enumerate(shape))
    return x.reshape(shape)


flatten = lowers("Flatten")(lambda x, *, axis=1: x.reshape(int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:]))))
squeeze = lowers("Squeeze", static=(1,))(lambda x, axes=None: jnp.squeeze(x, axes))
unsqueeze = lowers("Unsqueeze", static=(1,))(lambda x, axes: jnp.expand_dims(x, axes))


@lowers("Transpose")
def transpose(x: jax.Array, *, perm: tuple[int, ...] | None = None) -> jax.Array:
    """Axes in another order; without `perm` the reverse one."""
    return jnp.transpose(x, perm)


expand = lowers("Expand", static=(1,))(lambda x, shape: jnp.broadcast_to(x, np.broadcast_shapes(x.shape, shape)))
tile = lowers("Tile", static=(1,))(lambda x, repeats: jnp.tile(x, repeats))
concatenate = lowers("Concat")(lambda *values, axis: jnp.concatenate(values, axis))


@lowers("Split", static=(1,))
def split(
    x: jax.Array, sizes: tuple[int, ...] | None = None, *, axis: int = 0, num_outputs: int = 0, outputs: int
) -> jax.Array | tuple[jax.Array, ...]:
    """Pieces of the given sizes, or of equal size except for the last one."""
    whole = x.shape[axis]
    pieces = np.full(outputs, -(-whole // outputs)) if sizes is None else np.array(sizes)
    ends = np.minimum(np.cumsum(pieces), whole)[:-1]
    found = jnp.split(x, ends.tolist(), axis)
    return found[0] if outputs == 1 else tuple(found)


@lowers("DepthToSpace")
def depth_to_space(x: jax.Array, *, blocksize: int, mode: str = "DCR") -> jax.Array:
    """Channels become blocks of the image."""
    n, c, h, w = x.shape
    b = blocksize
    if mode == "DCR":
        y = x.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, c // b**2, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return y.reshape(n, c // b**2, h * b, w * b)


@lowers("SpaceToDepth")
def space_to_depth(x: jax.Array, *, blocksize: int, mode: str = "DCR") -> jax.Array:
    """Blocks of the image become channels."""
    n, c, h, w = x.shape
    b = blocksize
    y = x.reshape(n, c, h // b, b, w // b, b)
    y = y.transpose(0, 3, 5, 1, 2, 4) if mode == "DCR" else y.transpose(0, 1, 3, 5, 2, 4)
    return y.reshape(n, c * b**2, h // b, w // b)
