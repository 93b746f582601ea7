"""Normal forms: equal values get one form, so that grouping and hashing treat them as equal.

NaN is one value, and -0.0 is 0.0 (as in Spark's own GROUP BY); a map is the
sorted list of its entries.  Types that can hold the same values are widened to
one type.  If two types cannot, the tables cannot be compared.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_FLOATS = (T.FloatType, T.DoubleType)
_TIMES = (T.TimestampType, T.TimestampNTZType)
_TEXTS = (T.StringType, T.CharType, T.VarcharType)
_DIGITS = 38
"""the precision of the widest decimal"""


def common_type(one: T.DataType, other: T.DataType) -> T.DataType | None:
    """A type that holds the values of both types; None if there is none."""
    if one == other:
        return one
    for family, widest in ((_INTEGERS, T.LongType()), (_FLOATS, T.DoubleType()), (_TIMES, T.TimestampType())):
        if isinstance(one, family) and isinstance(other, family):
            return widest
    if isinstance(one, _TEXTS) and isinstance(other, _TEXTS):
        return T.StringType()
    if isinstance(one, T.DecimalType) and isinstance(other, T.DecimalType):
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale) + scale
        return T.DecimalType(digits, scale) if digits <= _DIGITS else None
    if isinstance(one, T.NullType):
        return other
    if isinstance(other, T.NullType):
        return one
    return _common_nested(one, other)


def _common_nested(one: T.DataType, other: T.DataType) -> T.DataType | None:
    if isinstance(one, T.ArrayType) and isinstance(other, T.ArrayType):
        element = common_type(one.elementType, other.elementType)
        return T.ArrayType(element) if element else None
    if isinstance(one, T.MapType) and isinstance(other, T.MapType):
        key, value = common_type(one.keyType, other.keyType), common_type(one.valueType, other.valueType)
        return T.MapType(key, value) if key and value else None
    if isinstance(one, T.StructType) and isinstance(other, T.StructType) and one.names == other.names:
        fields = [(a.name, common_type(a.dataType, b.dataType)) for a, b in zip(one, other, strict=True)]
        if all(kind for _, kind in fields):
            return T.StructType([T.StructField(name, kind) for name, kind in fields if kind])
    return None


def is_nested(kind: T.DataType) -> bool:
    return isinstance(kind, (T.ArrayType, T.MapType, T.StructType))


def is_comparable(kind: T.DataType) -> bool:
    """Whether Spark can group by values of the type."""
    if isinstance(kind, T.ArrayType):
        return is_comparable(kind.elementType)
    if isinstance(kind, T.MapType):
        return is_comparable(kind.keyType) and is_comparable(kind.valueType)
    if isinstance(kind, T.StructType):
        return all(is_comparable(field.dataType) for field in kind)
    return not isinstance(kind, (T.VariantType, T.UserDefinedType, T.CalendarIntervalType))


def normal(column: Column, kind: T.DataType) -> Column:
    """The column with equal values in one form."""
    if isinstance(kind, _FLOATS):
        nan = F.lit(float("nan")).cast(kind)
        return F.when(F.isnan(column), nan).when(column == 0, F.lit(0.0).cast(kind)).otherwise(column)
    if isinstance(kind, T.ArrayType) and _has_odd_values(kind):
        return F.transform(column, lambda element: normal(element, kind.elementType))
    if isinstance(kind, T.StructType) and _has_odd_values(kind):
        fields = [normal(column[field.name], field.dataType).alias(field.name) for field in kind]
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(kind, T.MapType):
        entries = F.transform(F.map_entries(column), lambda entry: _entry(entry, kind))
        return F.array_sort(entries)
    return column


def _entry(entry: Column, kind: T.MapType) -> Column:
    key, value = normal(entry["key"], kind.keyType), normal(entry["value"], kind.valueType)
    return F.struct(key.alias("key"), value.alias("value"))


def _has_odd_values(kind: T.DataType) -> bool:
    if isinstance(kind, T.ArrayType):
        return _has_odd_values(kind.elementType)
    if isinstance(kind, T.StructType):
        return any(_has_odd_values(field.dataType) for field in kind)
    return isinstance(kind, (*_FLOATS, T.MapType))
