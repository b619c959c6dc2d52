export * from "./publish.js";
export * from "./score.js";
export * from "./subscribe.js";
export * from "./types.js";
