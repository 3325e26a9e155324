import { expect, it } from 'vitest';
import { refuseP2pSecret } from './p2p-offer.ts';

it('a p2p secret has 16 to 1024 bytes, and any other length is refused with the limit', () => {
  expect([15, 16, 1024, 1025].map((bytes) => refuseP2pSecret(bytes)?.message ?? 'taken')).toEqual([
    'the p2p secret is too short: at least 16 bytes (tunnel p2p secret makes one)',
    'taken',
    'taken',
    'the p2p secret is too long: at most 1024 bytes',
  ]);
});
