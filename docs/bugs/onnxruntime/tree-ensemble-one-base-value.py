"""ONNX Runtime (CPU): TreeEnsembleClassifier reads beyond its base values

TreeEnsembleClassifier of two classes accepts one base value, and reads the second one, which lies behind the vector.

The model is not valid, because its operator's page wants as many base values as classes. It is to be refused, as the
model of three classes with two base values is.

The script starts itself again with MALLOC_PERTURB_, so that the C library fills fresh memory with the byte 0xAA.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os
import sys

if os.environ.get("MALLOC_PERTURB_") != "85":
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "MALLOC_PERTURB_": "85"})

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper


def model_of(classes, base_values):
    """Return a model of one tree, whose leaves give 1 to the first class and 2 to the second."""
    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "scores"],
        domain="ai.onnx.ml",
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0, 0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_values=[0.5, 0.0, 0.0],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        nodes_missing_value_tracks_true=[0, 0, 0],
        class_treeids=[0, 0],
        class_nodeids=[1, 2],
        class_ids=[0, 1],
        class_weights=[1.0, 2.0],
        classlabels_int64s=list(range(classes)),
        base_values=base_values,
    )
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])]
    outputs = [
        helper.make_tensor_value_info("label", TensorProto.INT64, [1]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, classes]),
    ]
    graph = helper.make_graph([node], "g", inputs, outputs)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def scores(classes, base_values):
    """Return the scores of zeros."""
    model = model_of(classes, base_values).SerializeToString()
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(["scores"], {"x": np.zeros((1, 2), np.float32)})[0]


print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
try:
    print("three classes with two base values of 10:", scores(3, [10.0, 10.0]).tolist())
except Exception as error:
    print("three classes with two base values are refused:", str(error)[-120:])
try:
    got = scores(2, [10.0])
except Exception as error:
    print("the bug does not show: two classes with one base value are refused:", str(error)[-120:])
    sys.exit(0)
print("two classes with one base value of 10:", got.tolist())
if got[0, 1] not in (0, 10):
    print(f"BUG: the score of the second class is {got[0, 1]}, whose bytes {got[0, 1:].tobytes().hex()} were in memory")
    sys.exit(1)
print("the bug does not show")
