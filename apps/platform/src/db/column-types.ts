// TypeScript types of database columns, as used in queries.
import type { ColumnType } from 'kysely';

export type Timestamp = ColumnType<Date, Date | string, Date | string>;
/** A timestamp column with a database default. */
export type GivenTimestamp = ColumnType<Date, Date | string | undefined, Date | string>;
/** A bigint column. The driver returns a number, exact up to 2^53. */
export type BigCount = ColumnType<number, number | undefined, number>;
