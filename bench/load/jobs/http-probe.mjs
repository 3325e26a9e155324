// Checks that HTTP responses are correct, because wrk only counts them without comparing bytes. Each response has a different length and
// position in the pattern.
import { HTTP_HOST } from '../../lib/wrk.mjs';
import { openConnection } from '../connection.mjs';
import { PatternCheck } from '../pattern.mjs';

const REQUESTS = 12;
const HEAD_MAX_BYTES = 4096;

/** @param {{ bytes: number, keepAlive: boolean, headers?: string[] }} parameters the same as in the measurement */
export async function httpProbe(address, { bytes, keepAlive, headers = [] }, ready) {
  const asked = Array.from({ length: REQUESTS }, (_, index) => ({ offset: index * 4099, bytes: bytes + index }));
  if (keepAlive) await probe(address, asked, headers);
  else for (const one of asked) await probe(address, [one], headers);
  await ready();
  return { requests: REQUESTS };
}

/** Sends requests one after the other on a connection, which the last request closes. */
async function probe(address, asked, headers) {
  let index = 0;
  let reading = new Answer(asked[0]);
  const more = headers.map((line) => `${line}\r\n`).join('');
  const textOf = ({ offset, bytes }, isLast) =>
    `GET /${offset}/${bytes} HTTP/1.1\r\nHost: ${HTTP_HOST}\r\n${more}${isLast ? 'Connection: close\r\n' : ''}\r\n`;
  const ask = () => textOf(asked[index], index === asked.length - 1);
  const onRead = (bytes, length) => {
    try {
      reading.take(bytes.subarray(0, length));
      if (!reading.isDone || index === asked.length - 1) return;
      index += 1;
      reading = new Answer(asked[index]);
      socket.write(ask());
    } catch (error) {
      socket.destroy(error);
    }
  };
  const { socket, ended } = openConnection(address, ask(), onRead);
  await ended;
  if (index !== asked.length - 1 || !reading.isDone) throw new Error('an answer was cut off');
}

class Answer {
  #check;
  #bytes;
  #head = '';

  constructor({ offset, bytes }) {
    this.#check = new PatternCheck(offset);
    this.#bytes = bytes;
  }

  get isDone() {
    return this.#check.bytes === this.#bytes;
  }

  take(bytes) {
    if (this.#head.endsWith('\r\n\r\n')) return this.#takeBody(bytes);
    const text = this.#head + bytes.toString('latin1');
    const end = text.indexOf('\r\n\r\n');
    if (end === -1 && text.length > HEAD_MAX_BYTES) throw new Error('an answer has no head');
    if (end === -1) this.#head = text;
    else {
      const from = end + 4 - this.#head.length;
      this.#head = text.slice(0, end + 4);
      this.#checkHead();
      this.#takeBody(bytes.subarray(from));
    }
    return undefined;
  }

  #checkHead() {
    if (!this.#head.startsWith('HTTP/1.1 200 ')) throw new Error(`an answer was ${this.#head.split('\r\n')[0]}`);
    const length = /\r\ncontent-length: (\d+)\r\n/i.exec(this.#head)?.[1];
    if (Number(length) !== this.#bytes) throw new Error(`an answer says ${length} of ${this.#bytes} bytes`);
  }

  #takeBody(bytes) {
    this.#check.take(bytes, bytes.length);
    if (!this.#check.right) throw new Error('an answer brought other bytes than were sent');
    if (this.#check.bytes > this.#bytes) throw new Error('an answer is too long');
  }
}
