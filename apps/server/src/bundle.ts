// What the bundler puts in, and what lies beside the bundle. This file and the bundle lie one folder below their app: paths are the same for both.
import { fileURLToPath } from 'node:url';

/** Sources that run unbundled (tests) have none. */
declare const __TUNNEL_VERSION__: string | undefined;

export const VERSION = typeof __TUNNEL_VERSION__ === 'string' ? __TUNNEL_VERSION__ : '0.0.0-dev';

export const DASHBOARD_FOLDER = fileURLToPath(new URL('../../dashboard/dist', import.meta.url));
export const VIEWER_FOLDER = fileURLToPath(new URL('../dist/api-reference', import.meta.url));
