import { describe, expect, it } from 'vitest';
import { DOWNLOADS_AT_ONCE, DownloadSlots } from './download-slots.ts';

const setUp = () => {
  const slots = new DownloadSlots();
  const cut: string[] = [];
  const take = (network: string, name = network) => slots.take(network, () => cut.push(name));
  return { take, cut };
};
const busy = expect.objectContaining({ code: 'DOWNLOADS_BUSY', status: 503, values: { seconds: 10 } }) as unknown;
const codeOf = (work: () => unknown): unknown => {
  try {
    work();
    return null;
  } catch (error) {
    return error;
  }
};

describe('slots of downloads', () => {
  it('are 32, and free again when a download has ended', () => {
    const { take, cut } = setUp();
    const frees = Array.from({ length: DOWNLOADS_AT_ONCE }, () => take('a'));
    expect(codeOf(() => take('a'))).toEqual(busy);
    frees[0]?.();
    frees[0]?.();
    take('a');
    expect(codeOf(() => take('a'))).toEqual(busy);
    expect(cut).toEqual([]);
  });

  it('all in one network: another network gets the oldest, up to the same number', () => {
    const { take, cut } = setUp();
    for (let index = 0; index < DOWNLOADS_AT_ONCE; index += 1) take('many', `many ${index}`);
    for (let index = 0; index < DOWNLOADS_AT_ONCE / 2; index += 1) take('few');
    expect(cut).toEqual(Array.from({ length: 16 }, (_, index) => `many ${index}`));
    expect(codeOf(() => take('few'))).toEqual(busy);
    expect(codeOf(() => take('many'))).toEqual(busy);
  });

  it('of 32 networks: none is cut', () => {
    const { take, cut } = setUp();
    for (let index = 0; index < DOWNLOADS_AT_ONCE; index += 1) take(`network ${index}`);
    expect(codeOf(() => take('another'))).toEqual(busy);
    expect(cut).toEqual([]);
  });
});
