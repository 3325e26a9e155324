export { restListenerOf } from './clear-text.ts';
export { hasHttpsPort, platformHostAtEdge } from './platform-host.ts';
export { publicPorts } from './public-ports.ts';
export { findServerFile, loadServerConfig, SERVER_FILE, type ServerConfigSources } from './server-config.ts';
export type { ServerConfig } from './server-schema.ts';
export { type ConfiguredParts, type ConfigWarning, configWarnings, likelyParts } from './server-warnings.ts';
