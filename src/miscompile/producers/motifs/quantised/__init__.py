"""Quantised chains: values that pass QuantizeLinear and DequantizeLinear around other operators."""
