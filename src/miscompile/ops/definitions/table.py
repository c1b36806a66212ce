"""The operators with a definition of ours."""

from collections.abc import Mapping

from miscompile.ops.definitions import (
    elementwise,
    flattened,
    indexing,
    linear,
    normalisation,
    pooling,
    quantised,
    recurrent,
    reductions,
    roi_align,
    transposed_convolution,
)
from miscompile.ops.definitions.evaluated_call import Definition

DEFINITIONS: Mapping[str, Definition] = {
    "AffineGrid": linear.affine_grid,
    "AveragePool": pooling.average_pool,
    "BatchNormalization": normalisation.batch_normalization,
    "Cast": elementwise.cast,
    "CastLike": elementwise.cast_like,
    "ConvTranspose": transposed_convolution.transposed_convolution,
    "Det": linear.det,
    "Dropout": normalisation.dropout,
    "Erf": elementwise.erf,
    "GRU": recurrent.gru,
    "GlobalAveragePool": pooling.global_average_pool,
    "GlobalMaxPool": pooling.global_max_pool,
    "Hardmax": flattened.hardmax,
    "LRN": normalisation.local_response,
    "LSTM": recurrent.lstm,
    "LayerNormalization": normalisation.layer_normalization,
    "LeakyRelu": elementwise.leaky_relu,
    "LogSoftmax": flattened.log_softmax,
    "LpNormalization": normalisation.lp_normalization,
    "LpPool": pooling.lp_pool,
    "MaxPool": pooling.max_pool,
    "OneHot": indexing.one_hot,
    "GlobalLpPool": pooling.global_lp_pool,
    "PRelu": elementwise.p_relu,
    "QLinearConv": quantised.qlinear_conv,
    "RNN": recurrent.rnn,
    "ReduceLogSumExp": reductions.reduce_log_sum_exp,
    "ReduceSumSquare": reductions.reduce_sum_square,
    "RoiAlign": roi_align.roi_align,
    "Shape": indexing.shape,
    "Shrink": elementwise.shrink,
    "Softmax": flattened.softmax,
    "Unique": indexing.unique,
}
