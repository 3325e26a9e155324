import { expect, it } from 'vitest';
import { PasswordHasher } from './password-hasher.ts';

const cheap = { memoryKib: 64, passes: 1, lanes: 1 };

it('passwords are hashed with Argon2id, 19 MiB and two passes, and verify again', async () => {
  const hasher = new PasswordHasher();
  const stored = await hasher.hash('correct horse');
  expect(stored).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  expect(await hasher.matches(stored, 'correct horse')).toBe(true);
  expect(await hasher.matches(stored, 'correct horse ')).toBe(false);
  expect(hasher.isOutdated(stored)).toBe(false);
});

it('hashes of a lower cost still verify, and count as outdated', async () => {
  const stored = await new PasswordHasher({ cost: cheap }).hash('correct horse');
  const hasher = new PasswordHasher();
  expect(hasher.isOutdated(stored)).toBe(true);
  expect(await hasher.matches(stored, 'correct horse')).toBe(true);
});

it('a missing hash is compared with a dummy and never matches', async () => {
  const hasher = new PasswordHasher({ cost: cheap });
  expect(await hasher.matches(null, 'correct horse')).toBe(false);
});

it('a bounded number of hash requests wait, further requests are refused at once, and waiting requests are served', async () => {
  const hasher = new PasswordHasher({ cost: cheap, slots: 1, waitingMax: 3 });
  const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => hasher.hash('correct horse')));
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(4);
  const refusals = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
  expect(refusals).toHaveLength(6);
  expect(refusals[0]).toMatchObject({ code: 'LOGIN_BUSY', status: 503, values: { seconds: 2 } });
  // Every hashing slot is free again.
  await expect(Promise.all([hasher.hash('a'), hasher.hash('b'), hasher.hash('c')])).resolves.toHaveLength(3);
});
