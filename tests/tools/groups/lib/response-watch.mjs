// Follows the responses of one keep-alive connection: whether one is awaited, how much of it has come, and its status.

const HEAD_END = '\r\n\r\n';

export class ResponseWatch {
  /** Requests that were sent and are not answered in full. */
  awaited = 0;
  /** Bytes of the response that is under way. */
  begun = 0;
  /** The last response said that the connection ends with it. */
  saidClose = false;
  #onResponse;
  #head = '';
  #bodyLeft = -1;
  #asked = '';

  /** `onResponse({ status, error })` for each whole one; `error` is the code of an answer that is the edge's own. */
  constructor(onResponse) {
    this.#onResponse = onResponse;
  }

  /** Bytes from the visitor: requests without bodies. */
  sent(bytes) {
    const parts = (this.#asked + bytes.toString('latin1')).split(HEAD_END);
    this.#asked = parts.pop();
    this.awaited += parts.length;
  }

  /** Bytes from the edge. */
  came(bytes) {
    let at = 0;
    while (at < bytes.length) at = this.#bodyLeft < 0 ? this.#takeHead(bytes, at) : this.#takeBody(bytes, at);
  }

  #takeHead(bytes, at) {
    const before = this.#head.length;
    this.#head += bytes.toString('latin1', at);
    const end = this.#head.indexOf(HEAD_END);
    if (end === -1) {
      this.begun += bytes.length - at;
      return bytes.length;
    }
    const taken = end + HEAD_END.length - before;
    this.#head = this.#head.slice(0, end + 2);
    this.begun += taken;
    this.#bodyLeft = Number(/\r\ncontent-length: (\d+)\r\n/i.exec(this.#head)?.[1]);
    if (Number.isNaN(this.#bodyLeft)) throw new Error(`a response without a length: ${this.#head}`);
    if (this.#bodyLeft === 0) this.#finish();
    return at + taken;
  }

  #takeBody(bytes, at) {
    const taken = Math.min(this.#bodyLeft, bytes.length - at);
    this.#bodyLeft -= taken;
    this.begun += taken;
    if (this.#bodyLeft === 0) this.#finish();
    return at + taken;
  }

  #finish() {
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(this.#head)?.[1]);
    const error = /\r\nx-tunnel-error: (\S+)\r\n/i.exec(this.#head)?.[1] ?? null;
    this.saidClose = /\r\nconnection: close\r\n/i.test(this.#head);
    this.#head = '';
    this.#bodyLeft = -1;
    this.begun = 0;
    this.awaited -= 1;
    this.#onResponse({ status, error });
  }
}
