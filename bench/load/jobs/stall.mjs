// Many visitors that request a stream and do not read it until `go`.
import { openStalled } from '../connection.mjs';
import { encodeRequest, SERVICE } from '../request.mjs';

const AT_ONCE = 100;

/** @param {{ readers: number, bytesEach: number }} parameters */
export async function stall(address, { readers, bytesEach }, ready) {
  let opened = 0;
  const worker = async () => {
    while (opened < readers) {
      opened += 1;
      await openStalled(address, encodeRequest(SERVICE.source, { offset: opened, bytes: bytesEach }));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  await ready();
  return { readers: opened };
}
