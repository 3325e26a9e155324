// Kinds of columns as the queries see them.
import type { ColumnType } from 'kysely';

export type Timestamp = ColumnType<Date, Date | string, Date | string>;
/** With a default of the database. */
export type GivenTimestamp = ColumnType<Date, Date | string | undefined, Date | string>;
/** bigint: the driver gives a number, which stays exact up to 2^53. */
export type BigCount = ColumnType<number, number | undefined, number>;
