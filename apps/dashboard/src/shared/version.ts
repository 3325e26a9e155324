// Version of the product, inserted by the bundler.
declare const __TUNNEL_VERSION__: string;

export const VERSION = __TUNNEL_VERSION__;
