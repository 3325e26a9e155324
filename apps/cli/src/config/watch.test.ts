// The watch of the config file also reports a change that happened before the watch started.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FakeClock, temporaryDirectory } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { ConfigWatch } from './watch.ts';

it('a config file that changes between reading and the start of the watch is reported once', async () => {
  const folder = await temporaryDirectory();
  const file = join(folder.path, 'rules.yml');
  const clock = new FakeClock();
  let changes = 0;
  writeFileSync(file, '- deny: 403\n');
  const watch = new ConfigWatch({ file, clock, onChange: () => (changes += 1), onTrouble: () => {} });
  try {
    writeFileSync(file, '- deny: 404\n');
    watch.start();
    await clock.advance(1000);
    expect(changes).toBe(1);
    watch.start();
    await clock.advance(1000);
    expect(changes).toBe(1);
  } finally {
    watch.stop();
    await folder.close();
  }
});

it('an unchanged config file is not reported', async () => {
  const folder = await temporaryDirectory();
  const file = join(folder.path, 'rules.yml');
  const clock = new FakeClock();
  let changes = 0;
  writeFileSync(file, '- deny: 403\n');
  const watch = new ConfigWatch({ file, clock, onChange: () => (changes += 1), onTrouble: () => {} });
  watch.start();
  await clock.advance(1000);
  watch.stop();
  await folder.close();
  expect(changes).toBe(0);
});
