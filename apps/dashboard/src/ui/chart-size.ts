// Known before the drawing is, so that nothing jumps.

export const CHART_HEIGHT_PX = 180;
