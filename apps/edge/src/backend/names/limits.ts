// Limits shared by several files of the edge that store names.

/** Maximum names read from a snapshot or file within a turn of the event loop. */
export const NAMES_ROWS_PER_TURN = 200;
/** Maximum size of a file of names. A larger file was not written by the edge: 100,000 reserved names take about 15 MB. */
export const NAMES_FILE_MAX_BYTES = 256 * 1024 * 1024;
