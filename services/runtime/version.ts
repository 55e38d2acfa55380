/** The version of this program, from `package.json`: the documents and the metrics name it. */
import packageFile from "../../package.json" with { type: "json" };

export const VERSION: string = packageFile.version;
