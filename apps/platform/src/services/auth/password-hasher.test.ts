import { expect, it } from 'vitest';
import { PasswordHasher } from './password-hasher.ts';

const cheap = { memoryKib: 64, passes: 1, lanes: 1 };

it('makes Argon2id hashes of 19 MiB and two passes, and knows the password again', async () => {
  const hasher = new PasswordHasher();
  const stored = await hasher.hash('correct horse');
  expect(stored).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  expect(await hasher.matches(stored, 'correct horse')).toBe(true);
  expect(await hasher.matches(stored, 'correct horse ')).toBe(false);
  expect(hasher.isOutdated(stored)).toBe(false);
});

it('knows hashes that were made with less', async () => {
  const stored = await new PasswordHasher({ cost: cheap }).hash('correct horse');
  const hasher = new PasswordHasher();
  expect(hasher.isOutdated(stored)).toBe(true);
  expect(await hasher.matches(stored, 'correct horse')).toBe(true);
});

it('compares with something when there is nothing to compare with, and never finds it equal', async () => {
  const hasher = new PasswordHasher({ cost: cheap });
  expect(await hasher.matches(null, 'correct horse')).toBe(false);
});

it('lets a bounded number wait, refuses the others at once, and serves all who waited', async () => {
  const hasher = new PasswordHasher({ cost: cheap, slots: 1, waitingMax: 3 });
  const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => hasher.hash('correct horse')));
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(4);
  const refusals = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
  expect(refusals).toHaveLength(6);
  expect(refusals[0]).toMatchObject({ code: 'LOGIN_BUSY', status: 503, values: { seconds: 2 } });
  // The slots are free again.
  await expect(Promise.all([hasher.hash('a'), hasher.hash('b'), hasher.hash('c')])).resolves.toHaveLength(3);
});
