export { type ClientConfig, type ClientTunnel, clientFileKeys, loadClientConfig } from './client-config.ts';
export { tunnelNames } from './tunnel-names.ts';
