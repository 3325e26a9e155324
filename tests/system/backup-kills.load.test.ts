// Backups and restores killed in the middle, with and without a running database.
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, type Program, spawnProgram } from '@tunnel/testkit';
import { afterEach, expect, it, vi } from 'vitest';
import { cleanEnv, ROOT, SERVER_BIN } from '../repo/checkout.fixture.ts';
import { BackupStage } from './backup.fixture.ts';
import { ask, pidOf, processesOf } from './embedded-database.fixture.ts';
import { withoutOurEnvironment } from './stack.fixture.ts';

vi.setConfig({ testTimeout: 300_000 });

/** The second kill happens while the rest of the first is still there. `npm run try:backup` kills more often. */
const KILLS = 2;
const stages: BackupStage[] = [];
const programs: Program[] = [];
afterEach(async () => {
  for (const program of programs.splice(0)) await program.close();
  for (const stage of stages.splice(0)) await stage.close();
});

const open = async (): Promise<BackupStage> => {
  const stage = await BackupStage.open({ wal: false });
  stages.push(stage);
  return stage;
};

const spawnCommand = async (stage: BackupStage, args: readonly string[]): Promise<Program> => {
  const program = await spawnProgram({
    command: process.execPath,
    args: [SERVER_BIN, 'backup', ...args, '--config', stage.writeConfig()],
    env: { ...withoutOurEnvironment(), ...cleanEnv() },
    cwd: join(ROOT, 'tests'),
  });
  programs.push(program);
  return program;
};

/** Runs a command and kills it with -9 once `isMiddle` holds. */
const killed = async (stage: BackupStage, args: readonly string[], isMiddle: () => boolean): Promise<void> => {
  const program = await spawnCommand(stage, args);
  await eventually(() => expect(isMiddle() || program.exit !== null).toBe(true), { timeoutMs: 60_000, intervalMs: 2 });
  program.signal('SIGKILL');
  await program.waitForExit();
};

const basesOf = (stage: BackupStage): string[] => {
  const base = join(stage.backupDir, 'base');
  return existsSync(base) ? readdirSync(base) : [];
};
const unfinished = (stage: BackupStage): string[] => basesOf(stage).filter((name) => name.endsWith('.part'));

/** When the unfinished backups were begun. A backup can have the name of an earlier one that was removed in the same second. */
const begun = (stage: BackupStage): number[] =>
  unfinished(stage).flatMap(
    (name) => statSync(join(stage.backupDir, 'base', name), { throwIfNoEntry: false })?.birthtimeMs ?? [],
  );

const FILL = 'create table filler as select n, repeat(md5(n::text), 30) as text from generate_series(1, 60000) as n';

it('a killed backup, or a backup with a killed database, leaves nothing that the next backup does not remove, and the next one is valid', async () => {
  const stage = await open();
  const url = await stage.start();
  await ask(url, FILL);
  for (let kill = 0; kill < KILLS; kill += 1) {
    const before = begun(stage);
    await killed(stage, ['create'], () => begun(stage).some((at) => !before.includes(at)));
    expect(unfinished(stage)).toHaveLength(1);
    expect((await stage.succeed('list', '--json')).join('')).not.toContain('.part');
  }
  const name = await stage.create();
  expect(unfinished(stage)).toEqual([]);
  await stage.succeed('verify', name);
  // The database is killed beneath a backup: the backup fails, and leaves nothing.
  const program = await spawnCommand(stage, ['create']);
  await eventually(() => expect(unfinished(stage)).toHaveLength(1), { timeoutMs: 60_000, intervalMs: 2 });
  process.kill(pidOf(stage.postgres), 'SIGKILL');
  expect((await program.waitForExit({ timeoutMs: 60_000 })).code).toBe(1);
  expect(program.stderr).toHaveLength(1);
  expect(unfinished(stage)).toEqual([]);
  await stage.stop();
  // Without a server, the command runs the database, which must end with the command.
  await killed(stage, ['create'], () => unfinished(stage).length > 0);
  await eventually(() => expect(processesOf(stage.dataDir)).toEqual([]), { timeoutMs: 30_000 });
  const last = await stage.create();
  expect(basesOf(stage).toSorted()).toEqual([name, last].toSorted());
  await stage.succeed('verify');
});

it('a killed restore leaves a directory on which no server starts, and names the way out', async () => {
  const stage = await open();
  const url = await stage.start();
  await ask(url, FILL);
  await stage.create();
  await stage.stop();
  const target = stage.folder('restored');
  const restore = ['restore', '--from', stage.backupDir, '--to', target];
  await killed(stage, restore, () => existsSync(join(target, 'postgres', 'base')));
  expect(existsSync(join(target, 'restore-unfinished'))).toBe(true);
  const again = await stage.run(...restore);
  expect([again.code, again.stderr]).toEqual([
    2,
    [
      `tunnel-server: data directory ${target} holds an unfinished restore. Delete the directory, and run \`tunnel-server backup restore\` again.`,
    ],
  ]);
  const server = await spawnProgram({
    command: process.execPath,
    args: [SERVER_BIN, 'stack', '--data-dir', target],
    env: { ...withoutOurEnvironment(), ...cleanEnv() },
    cwd: join(ROOT, 'tests'),
  });
  programs.push(server);
  expect((await server.waitForExit({ timeoutMs: 60_000 })).code).toBe(2);
  expect(server.stderr.join('\n')).toContain('holds an unfinished restore');
});
