// Bounds shared by several files of this folder.

/** rows that are read in one turn of the event loop, of the snapshot or a file */
export const NAMES_ROWS_PER_TURN = 200;
/** a larger file of names is none of ours: 100,000 reserved ones have some 15 MB */
export const NAMES_FILE_MAX_BYTES = 256 * 1024 * 1024;
