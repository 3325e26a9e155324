// An endless download with a comparison of arriving bytes; `go` ends it.
import { openConnection } from '../connection.mjs';
import { PatternCheck } from '../pattern.mjs';
import { encodeRequest, SERVICE } from '../request.mjs';

export async function endless(address, _parameters, ready) {
  const check = new PatternCheck(0);
  const request = encodeRequest(SERVICE.source, { bytes: Number.MAX_SAFE_INTEGER });
  const { ended } = openConnection(address, request, (chunk, length) => check.take(chunk, length));
  const cut = ended.then(() => {
    throw new Error('an endless download ended');
  });
  const begin = performance.now();
  await Promise.race([ready(), cut]);
  if (!check.right) throw new Error('an endless download brought other bytes than were sent');
  return { bytes: check.bytes, seconds: (performance.now() - begin) / 1000 };
}
