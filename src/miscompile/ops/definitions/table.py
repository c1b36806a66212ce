"""The operators with a definition of ours."""

from collections.abc import Mapping

from miscompile.ops.definitions import elementwise, flattened, indexing, linear, normalisation, recurrent, reductions
from miscompile.ops.definitions.given import Definition

DEFINITIONS: Mapping[str, Definition] = {
    "AffineGrid": linear.affine_grid,
    "BatchNormalization": normalisation.batch_normalization,
    "Cast": elementwise.cast,
    "CastLike": elementwise.cast_like,
    "Det": linear.det,
    "Dropout": normalisation.dropout,
    "Erf": elementwise.erf,
    "GRU": recurrent.gru,
    "Hardmax": flattened.hardmax,
    "LRN": normalisation.local_response,
    "LSTM": recurrent.lstm,
    "LayerNormalization": normalisation.layer_normalization,
    "LogSoftmax": flattened.log_softmax,
    "LpNormalization": normalisation.lp_normalization,
    "OneHot": indexing.one_hot,
    "RNN": recurrent.rnn,
    "ReduceSumSquare": reductions.reduce_sum_square,
    "Shape": indexing.shape,
    "Shrink": elementwise.shrink,
    "Softmax": flattened.softmax,
    "Unique": indexing.unique,
}
