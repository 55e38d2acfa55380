// Shows the API document of this gateway. Without a validator address the page sends no request to another site.
globalThis.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#api",
  validatorUrl: null,
  deepLinking: true,
  displayRequestDuration: true,
  persistAuthorization: false,
});
