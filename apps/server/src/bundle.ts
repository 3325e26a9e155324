// Values inserted by the bundler, and paths of files next to the bundle. This source file and the bundle are both one folder below the
// app, so that relative paths are the same for both.
import { fileURLToPath } from 'node:url';

/** Version of the product, inserted by the bundler. Undefined if the sources run without a bundle, as in tests. */
declare const __TUNNEL_VERSION__: string | undefined;

export const VERSION = typeof __TUNNEL_VERSION__ === 'string' ? __TUNNEL_VERSION__ : '0.0.0-dev';

export const DASHBOARD_FOLDER = fileURLToPath(new URL('../../dashboard/dist', import.meta.url));
export const GUIDE_FOLDER = fileURLToPath(new URL('../dist/guide', import.meta.url));
export const VIEWER_FOLDER = fileURLToPath(new URL('../dist/api-reference', import.meta.url));
