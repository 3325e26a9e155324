// A logger that writes nothing. Separate from the logger that writes, so that a program without logs does not load the code for logs.
import type { Logger } from './logger.ts';

export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
  droppedLines: 0,
  flush: () => Promise.resolve(),
};
