// A single hono route, as the yardstick of the platform API.
// Usage: node bare-hono.mjs FOLDER
import { renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

// Loads the same package versions as the platform.
const ofPlatform = createRequire(new URL('../../apps/platform/package.json', import.meta.url));
const { serve } = ofPlatform('@hono/node-server');
const { Hono } = ofPlatform('hono');

const folder = process.argv[2];
// The same response body as GET /auth/me.
const ANSWER = {
  id: '5f0c1a52-8f3e-4c7b-9d2a-1b7e4f6a9c03',
  email: 'someone-12345-1794728624456@example.com',
  display_name: null,
  email_verified: true,
  status: 'active',
  auth_method: 'password',
  created_at: '2030-01-01T12:00:00.000Z',
};

const app = new Hono();
app.get('/auth/me', (context) => context.json(ANSWER));
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => {
  // The rename makes the file appear completely or not at all.
  writeFileSync(join(folder, 'run.part'), JSON.stringify({ port }));
  renameSync(join(folder, 'run.part'), join(folder, 'run.json'));
});
