// Lines no longer than a terminal is wide.

const COLOUR = /\u001b\[\d+m/g;

/** Cut by what is seen: colours take no room, and the last one is ended. */
export const cutVisible = (line: string, width: number): string => {
  if (line.replace(COLOUR, '').length <= width) return line;
  const parts = line.split(/(\u001b\[\d+m)/);
  let room = width - 1;
  let isCut = false;
  const kept = parts.map((part, at) => {
    if (at % 2 === 1) return part;
    const text = isCut ? '' : part.slice(0, room);
    room -= text.length;
    if (isCut || text.length === part.length) return text;
    isCut = true;
    return `${text}…`;
  });
  return kept.join('');
};
