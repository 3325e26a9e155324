// Re-exports every part that handles tunnel options as a single module, which the trial option test builds from modified sources.
export { specFromWire, specToWire } from '../../apps/cli/src/agent/spec-wire.ts';
export { buildProgram, run } from '../../apps/cli/src/all-commands.ts';
export { commandWords } from '../../apps/cli/src/completion/command-words.ts';
export { describeTunnel } from '../../apps/cli/src/config/described-tunnel.ts';
export { planTunnels } from '../../apps/cli/src/config/plan.ts';
export { entryOfFlags } from '../../apps/cli/src/config/tunnel-flags.ts';
export { makeTestIo } from '../../apps/cli/src/io/io.fixture.ts';
export { tunnelFields } from '../../packages/client/src/tunnels/tunnel-spec.ts';
export { loadClientConfig } from '../../packages/config/src/client/client-config.ts';
export { libraryTunnelOf, planReload, specOfLibrary } from '../../packages/tunnel-spec/src/index.ts';
export { render } from './configuration-doc.fixture.ts';
