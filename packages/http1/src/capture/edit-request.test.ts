import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { type RequestEdit } from '../edited-request.ts';
import { parseRequestHead, type RequestHead } from '../request-head.ts';
import { type EditedRequest, editRequest } from './edit-request.ts';

const BOUNDS = { shownBytes: 64, unpackedBytes: 1024 };

const headOf = (...fields: string[]): RequestHead => {
  const head = parseRequestHead(['POST / HTTP/1.1', 'Host: a', ...fields, '', ''].join('\r\n'));
  if (head.kind === 'problem') throw new Error(head.reason);
  return head;
};

const packed = gzipSync('{"token":"s3cret","n":1}');
const stored = {
  head: headOf('Content-Type: application/json', 'Content-Encoding: gzip', `Content-Length: ${packed.length}`),
  body: packed.toString('latin1'),
};

const edit = async (changes: RequestEdit): Promise<EditedRequest> => {
  const edited = await editRequest(stored, changes, BOUNDS);
  if (edited?.kind !== 'edited') throw new Error(edited?.reason ?? 'not edited');
  return edited;
};

it('a replay without changes sends the stored request', async () => {
  expect(await editRequest(stored, {}, BOUNDS)).toBeNull();
});

it('the stored body keeps its bytes if only the head of a replay changes', async () => {
  const { head, body } = await edit({ path: '/other' });
  expect(body.equals(packed)).toBe(true);
  expect(head.text).toContain('Content-Encoding: gzip');
});

it('a new replay body is sent as uncompressed UTF-8, with its redacted secrets restored', async () => {
  const { head, body } = await edit({ body: '{"n":"ä","token":"[redacted]"}' });
  expect(body.toString()).toBe('{"n":"ä","token":"s3cret"}');
  expect(head.text).not.toContain('Content-Encoding');
  expect(head.framing).toEqual({ kind: 'length', length: body.length });
});

it.each([
  ['{"key":"[redacted]"}', /^body: \[redacted\] replaces/],
  ['ä'.repeat(33), /^body: larger than 64 bytes$/],
])('a replay body that cannot be sent is refused with the reason: %s', async (body, reason) => {
  await expect(edit({ body })).rejects.toThrow(reason);
});

it.each<[string, RequestEdit]>([
  ['stays', {}],
  ['has its mark', { body: '{"token":"[redacted]"}' }],
])(
  'a body that %s, with a hidden value, must keep its Content-Type, so that the replay still hides it',
  async (_, changes) => {
    const as = (...types: string[]): RequestEdit => {
      const given = types.map((type) => ['content-type', type] as const);
      return { ...changes, headers: [['content-encoding', 'gzip'], ...given] };
    };
    for (const edited of [as('text/plain'), as(), as('application/octet-stream', 'application/json')]) {
      await expect(edit(edited)).rejects.toThrow(/^headers: another Content-Type would reveal \[redacted\]/);
    }
    expect((await edit(as('application/json'))).body.length).toBeGreaterThan(0);
  },
);

it('a stored body with a hidden value must keep its Content-Encoding, so that the replay still hides it', async () => {
  const headers = [['content-type', 'application/json']] as const;
  await expect(edit({ headers })).rejects.toThrow(/^headers: another Content-Encoding would reveal/);
  // A new body is never compressed, so any Content-Encoding header is dropped.
  expect((await edit({ headers, body: '{"token":"[redacted]"}' })).body.toString()).toBe('{"token":"s3cret"}');
});

it('a replay body without hidden values can have another Content-Type', async () => {
  const headers = [['content-type', 'text/plain']] as const;
  expect((await edit({ headers, body: '{"token":"mine"}' })).head.text).toContain('content-type: text/plain');
  const plain = { head: headOf('Content-Type: application/json', 'Content-Length: 7'), body: '{"n":1}' };
  expect(await editRequest(plain, { headers }, BOUNDS)).toMatchObject({ kind: 'edited' });
});
