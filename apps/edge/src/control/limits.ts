// Bounds shared by several files of this folder.

/**
 * the name and the port of a lost session are held for it this long
 * @limit tunnels: Lost client, time before its names and ports are released | other clients can take the names and ports
 */
export const RESUME_WINDOW_MS = 30_000;
/** a request that is not over by then is cut off */
export const SPEED_TIMEOUT_MS = 30_000;
