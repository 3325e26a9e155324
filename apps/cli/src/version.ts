// The version, put in by the bundler; sources that run unbundled (tests) have none.
declare const __TUNNEL_VERSION__: string | undefined;

export const VERSION = typeof __TUNNEL_VERSION__ === 'string' ? __TUNNEL_VERSION__ : '0.0.0-dev';
