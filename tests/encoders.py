"""The encoders of the case file: configurations and tensor shapes, sizes V 9, max_len 8, d 4, 2 heads, d_ff 8."""

from __future__ import annotations

from tests.weight_rule import attention_shapes

Shapes = dict[str, tuple[int, ...]]

SIZES = {
    "vocab_size": 9,
    "max_position_embeddings": 8,
    "hidden_size": 4,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "intermediate_size": 8,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
}
BERT = {"tl_arch": "bert", "tl_tokenizer": "file", "tl_format": 1} | SIZES
ELECTRA = {
    "tl_arch": "electra",
    "tl_tokenizer": "file",
    "tl_format": 1,
    **SIZES,
    "num_hidden_layers": 2,
    "tl_generator": SIZES,
    "tl_tie_embeddings": True,
    "tl_mask_id": 3,
    "tl_special_ids": [1, 2],
}
BACKBONE = {
    "vocab": 9, "max_len": 8, "d_model": 4, "n_heads": 2, "n_layers": 1, "d_ff": 8,
    "type_vocab": 2, "dropout": 0.1, "ln_eps": 1e-12,
}  # fmt: skip
TABLES: Shapes = {"word_emb.weight": (9, 4), "pos_emb.weight": (8, 4), "type_emb.weight": (2, 4)}


def norm(name: str) -> Shapes:
    """Gain and bias of a LayerNorm."""
    return {f"{name}.weight": (4,), f"{name}.bias": (4,)}


def under(prefix: str, shapes: Shapes) -> Shapes:
    """The shapes with a prefix before each name."""
    return {f"{prefix}{name}": shape for name, shape in shapes.items()}


def encoder(layers: int) -> Shapes:
    """A BERT encoder."""
    shapes = TABLES | norm("emb_norm")
    for i in range(layers):
        at = f"layers.{i}"
        shapes |= attention_shapes(f"{at}.attn", 4) | norm(f"{at}.attn_norm") | norm(f"{at}.ff_norm")
        shapes |= {f"{at}.ff1.weight": (8, 4), f"{at}.ff1.bias": (8,)}
        shapes |= {f"{at}.ff2.weight": (4, 8), f"{at}.ff2.bias": (4,)}
    return shapes


def masked_lm(layers: int) -> Shapes:
    """An encoder with its masked-token head."""
    head = {"transform.weight": (4, 4), "transform.bias": (4,), "decoder_bias": (9,)}
    return under("bert.", encoder(layers)) | head | norm("transform_norm")


def electra(*, tied: bool) -> Shapes:
    """A discriminator of two layers and a generator of one."""
    head = {
        "dense.weight": (4, 4),
        "dense.bias": (4,),
        "dense_prediction.weight": (1, 4),
        "dense_prediction.bias": (1,),
    }
    shapes = under("discriminator.electra.", encoder(2)) | under("discriminator.discriminator_predictions.", head)
    shapes |= under("generator.", masked_lm(1))
    return {name: shape for name, shape in shapes.items() if not tied or name not in under("generator.bert.", TABLES)}


def classifier(classes: int) -> Shapes:
    """A classifier on a BERT encoder of one layer."""
    return under("backbone.", encoder(1)) | {"classifier.weight": (classes, 4), "classifier.bias": (classes,)}
