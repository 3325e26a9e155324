// Limits shared by several files of the control plane.

/**
 * Time for which the name and port of a disconnected session are held.
 * @limit tunnels: Lost client, time before its names and ports are released | other clients can take the names and ports
 */
export const RESUME_WINDOW_MS = 30_000;
/** Maximum duration of a speed-test request. Longer requests are cut off. */
export const SPEED_TIMEOUT_MS = 30_000;
