// A `tunnel-server edge` with the features that scripts need, and with higher limits for alerts and frames than usual, for scripts that
// send many of them. Bundled by roomy-edge.mjs, because it imports the sources.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadServerConfig } from '@tunnel/config/server';
import { createEdge } from '@tunnel/edge';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';

const ANY = 1e9;
const { values } = parseArgs({
  options: { config: { type: 'string' }, 'data-dir': { type: 'string' } },
  allowPositionals: true,
});
const folder = values['data-dir'];
const edge = createEdge(loadServerConfig({ env: {}, file: values.config, overrides: { data_dir: folder } }), {
  clock: systemClock,
  logger: createLogger({ level: 'info', format: 'json', stream: process.stderr }),
  adminToken: new Secret('admin'),
  dataDir: folder,
  alertRates: { perGroup: ANY, perAccount: ANY, perHostOfAccount: ANY, perHost: ANY },
  controlRateLimits: {
    connection: { perSecond: ANY, burst: ANY },
    account: { perSecond: ANY, burst: ANY },
    perTurn: 64,
    pauseMinMs: 50,
  },
});
await edge.start();
process.once('SIGTERM', () => void edge.stop({ drainMs: 1000 }).then(() => process.exit(0)));

const { control, http, api, metrics } = edge.addresses;
const tokenFile = join(folder, 'admin-token');
mkdirSync(folder, { recursive: true });
writeFileSync(tokenFile, 'admin\n', { mode: 0o600 });
const run = {
  control: `127.0.0.1:${control.port}`,
  http_url: `http://127.0.0.1:${http.port}`,
  api_url: `http://127.0.0.1:${api.port}`,
  metrics_url: `http://127.0.0.1:${metrics.port}/metrics`,
  admin_token_file: tokenFile,
};
writeFileSync(join(folder, 'run.json'), JSON.stringify(run));
