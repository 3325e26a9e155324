// Colours for people at a terminal who have not said that they want none.
import pc from 'picocolors';
import type { Io } from '../io.ts';

export type Colours = ReturnType<typeof pc.createColors>;

export const coloursOf = ({ stdout, env }: Pick<Io, 'stdout' | 'env'>): Colours =>
  pc.createColors(stdout.isTTY === true && (env['NO_COLOR'] ?? '') === '');
