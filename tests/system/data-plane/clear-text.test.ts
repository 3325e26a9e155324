// Tests of unencrypted connections that an edge refuses, as seen by an operator: at the start, in run.json, and at the REST API.
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { type Harness, it } from '../in-process.fixture.ts';
import { runServerInProcess } from '../server-in-process.fixture.ts';
import { TLS_CERT, withoutOurEnvironment } from '../stack.fixture.ts';

/** Starts `tunnel-server edge` with settings that prevent the start, and returns the exit code and stderr. */
const refusalOf = async (harness: Harness, server: string): Promise<{ code: number | null; text: string }> => {
  const dir = await harness.folder();
  const file = join(dir, 'server.toml');
  writeFileSync(file, `[server]\n${server}\n`);
  const where = { config: file, dataDir: join(dir, 'data'), workingDir: dir };
  const program = harness.use(runServerInProcess({ command: 'edge', ...where, env: withoutOurEnvironment() }));
  const { code } = await program.waitForExit({ timeoutMs: 30_000 });
  return { code, text: program.stderr.join('\n') };
};

const statusOf = (url: string, token: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const sent = request(`${url}/api/tunnels`, { ca: readFileSync(TLS_CERT), headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on('error', reject);
    sent.end();
  });

describe.concurrent('an edge', () => {
  it('refuses to start with an unencrypted remote link or REST API, with exit code 2 and the key that allows it', async ({
    harness,
  }) => {
    const link = 'platform_credential_file = "/nowhere"';
    for (const server of [`platform_url = "http://platform.example"\n${link}`, 'api_host = "0.0.0.0"']) {
      const { code, text } = await refusalOf(harness, server);
      expect(code).toBe(2);
      expect(text).toContain('server.allow_insecure_link = true');
    }
  });

  it('keeps the REST API on loopback, and logs the fact, if it listens on all addresses without a certificate', async ({
    harness,
  }) => {
    const stack = await harness.stack({ server: 'host = "0.0.0.0"' });
    expect(new URL(stack.run.api_url).hostname).toBe('127.0.0.1');
    expect((await stack.api('/api/status')).status).toBe(200);
    const said = stack.program.stderr.filter((line) => line.includes('REST API listens on loopback only'));
    expect(said).toHaveLength(1);
  });

  it('serves the REST API only over TLS if it listens on all addresses with a certificate', async ({ harness }) => {
    const stack = await harness.stack({ server: 'host = "0.0.0.0"', tls: true });
    const { api_url } = stack.run;
    expect(new URL(api_url).protocol).toBe('https:');
    expect(await statusOf(api_url, readFileSync(stack.tokenFile, 'utf8').trim())).toBe(200);
    await expect(fetch(api_url.replace('https:', 'http:'))).rejects.toThrow('fetch failed');
  });
});
